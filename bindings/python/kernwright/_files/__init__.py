"""Arrays in files: safetensors, GGUF and .npy, read to a device some megabytes at a time."""
