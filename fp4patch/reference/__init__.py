"""Number formats in NumPy: what conversions are compared with, code for code.

Nothing here is fast, and nothing depends on a GPU. Formats: OCP Microscaling Formats (MX) 1.0, section 5; PTX ISA,
``cvt``. Needs NumPy alone.
"""
