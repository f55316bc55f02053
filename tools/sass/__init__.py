"""What nvcc made of a kernel: disassemble a build, find a kernel's main loop, count what one pass through it issues."""
