// Package setting defines flags that check their values when they are set, from the command line or a variable: a
// process whose flags are set has no value that cannot be meant. What only the machine can answer (whether a file is
// there), or two flags together, the command checks itself.
//
// Every flag of this project is defined here; a test of htcd's commands requires it, and a wrong value of each.
package setting
