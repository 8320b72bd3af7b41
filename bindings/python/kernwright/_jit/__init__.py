"""From texts to kernels: sources, options, modules, lint, packs."""
