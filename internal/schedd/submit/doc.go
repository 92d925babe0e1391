// Package submit writes what HTCondor is given: the submit description of a job, a DAG or a factory, with the scripts
// and files beside it. Render returns them, refusing what may not be sent; Stage writes them into a directory of the
// run's own. It calls no program.
//
//	describe.go, compose.go, render.go   a job's description and its submit file
//	submitline.go, allow.go, bounds.go   what a user's own lines may say
//	wrapper.go, *.sh                     what runs beside the script
//	dag.go, dagrender.go                 a DAG: one file for DAGMan, one for each step
package submit
