// Package ports makes the Services of spec.ports in one namespace, by an account of that namespace:
//
//	Service NAME:8888 ──> this program's Pod, a port of its own ──> htcd, as for htcd exec ──> port 8888 of the job
//
// The Service of an HTCJob or HTCWorkflow and the ports here are there from its beginning to its end. The program
// remembers nothing: after a start it takes other ports, and is ready once all Services name these.
package ports
