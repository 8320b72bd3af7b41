"""LoRA adapters: their files, and their slots beside the weights of a model."""
