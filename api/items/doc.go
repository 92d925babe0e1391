// Package items makes the variables of each job out of spec.items, spec.parameters or a table in JSON or CSV. It is
// pure, and knows neither Kubernetes nor HTCondor; which variables are allowed is the caller's rule.
//
// An item is the text of one job's variables as it is stored and travels to the job: lines NAME=value, each with a line
// break, in the order of the names. Errors name the row, and in a table the line, so that they can be found in an
// editor.
package items
