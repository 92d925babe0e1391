package submitfile

// WithItems returns the jobs as they are when each item's values are those of variables of the queue statement, which
// has none of its own: the nodes of a DAG that run the same file, in which each has the number 0. The file says of
// every line what it says without them.
func (q *Jobs) WithItems(names []string, items [][]string) *Jobs {
	with := *q
	with.named(names)
	with.Items, with.alone = items, true
	with.indexes = make([]int, len(items))
	return &with
}
