"""akunu's kernels for NVIDIA GPUs: the file `akunu.kernels`, which akunu finds by itself."""
