"""Who works beside the device: threads and processes that prepare items, lanes, and the writer."""
