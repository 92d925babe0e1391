// Package items makes the variables of each job out of spec.items, spec.parameters or a table in JSON or CSV. It is pure,
// and knows neither Kubernetes nor HTCondor; which variables are allowed is the caller's rule.
//
// An Item is one job's variables in the form in which they are stored and travel to the job: lines NAME=value, in the order of
// the names. Errors name the row, and in a table the line, so that they can be found in an editor.
package items
