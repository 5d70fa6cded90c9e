"""What is there: in this machine, in a source tree's build, in a binary."""
