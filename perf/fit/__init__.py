"""What designs sustain of a GPU, fitted to records of their times, and how good the choice is that follows."""
