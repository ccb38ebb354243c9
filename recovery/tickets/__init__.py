"""What a vendor is given for a ticket: one node's evidence, without what is nobody's business."""

from recovery.tickets.contents import Ticket, ticket_of
from recovery.tickets.packing import packed
from recovery.tickets.striking import Private, Striker

__all__ = ["Private", "Striker", "Ticket", "packed", "ticket_of"]
