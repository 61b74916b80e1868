"""What is known of each GPU over months: one small file for each, which a team can commit."""
