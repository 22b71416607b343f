"""What goes to the device together: batches, their sizes, the pass over them, and checks of its vectors."""
