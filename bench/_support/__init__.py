"""What several measurements share: clusters, clocks, processes of resource managers, sizes."""
