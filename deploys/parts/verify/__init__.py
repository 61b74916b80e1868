"""The proof, on clusters and on Docker hosts."""
