"""What carries events: adapters of the bus port."""
