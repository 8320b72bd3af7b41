"""Parameters on their way from files to the memory that holds them."""
