"""The experiments of the papers, reproduced and judged: data, studies, claims, a report."""
