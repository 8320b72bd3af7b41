// Holds the precompiled headers of all unit tests.
