"""What GPUs cost: who held them, who used them, and where every installed GPU hour went."""
