"""What a monitoring system is given: alert rules, a dashboard, an example of who is told."""

from recovery.monitoring.alerts import Alert, alerts
from recovery.monitoring.dashboard import dashboard
from recovery.monitoring.limits import Limits, limits_of
from recovery.monitoring.rendering import rendered

__all__ = ["Alert", "Limits", "alerts", "dashboard", "limits_of", "rendered"]
