"""``fp4patch doctor``: this machine, source trees and compiled code, examined for FP4."""
