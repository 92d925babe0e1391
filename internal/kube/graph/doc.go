// Package graph makes of an HTCWorkflow's spec the graph of its steps, and of that the nodes of each DAG that is sent.
// It is pure.
//
//	spec.steps ── New ──> Graph: steps, what each needs, levels
//	                        └── Nodes(level, what became of the levels before) ──> the nodes of one DAG, with their parents
//
// Steps are cut into levels, as a step that runs once for all sequences can only be sent when it is known which have
// succeeded, and one whose items another step writes when that has ended (made.go). The level of a step is the highest
// of those it needs, and one more where it runs once and that one in each sequence, or has its items from that one. A
// level is one DAG, sent when the one before has ended. The last level is that of finally.
//
//	generate ─> simulate x4 ─> merge ─┐ in each sequence: level 0
//	                                  └─> plot (pairing All): level 1 ─> ... ─> report (finally): level 2
//
// forEach makes several nodes of a step, and needs may pair those of two steps by the variables of their items
// (pairs.go). With spec.graph nodes and edges are listed one by one, and there is one level (listed.go). Their tables
// come from Read, before nodes are made.
//
// What the apiserver cannot check is checked here: names of steps, cycles, pulls, and how much it is together.
package graph
