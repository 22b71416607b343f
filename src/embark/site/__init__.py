"""The page: leaderboards, comparisons, tasks, models and runs as a static bundle, written to a folder or served."""

from typing import TYPE_CHECKING

from embark import public

if TYPE_CHECKING:  # the public names: loaded at first use
    from embark.reports.kept import save_report as save_report
    from embark.site.bundle import export as export
    from embark.site.server import serve as serve
else:
    __getattr__, __dir__ = public.names_of("site")
