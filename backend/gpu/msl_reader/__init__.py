"""Reads kernels in the Metal Shading Language: for Metal's emulator and for CUDA's translator."""
