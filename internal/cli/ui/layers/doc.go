// Package layers places the nodes of a graph in columns, each to the right of all that come before it, so that few
// edges cross and none lies below a node. It is pure.
//
// An edge that passes a column has a place of its own there, and the edges of one parent share it:
//
//	a ─┬─> b ──┬─> d
//	   └───────┴─> e      a passes the column of b on its way to e
//
// The order in the columns is found by sweeps from left to right and back, each node going to the mean of its
// neighbours, and by exchanging those next to each other (Sugiyama, Tagawa and Toda 1981). The places in that order are
// those nearest to the means of their neighbours.
package layers
