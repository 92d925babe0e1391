// Package dagfile reads DAGMan's input files: the nodes, what each of them runs and with which variables, and the
// edges, with all that is spliced and included. It runs nothing and reads no submit files.
//
// What HTCondor 23.9 and 25.14 both refuse is refused, with the file and the line. What only one of them knows is read
// as that one reads it, such as VARS of 25 without quotes. What both take and read differently is refused, with what to
// write instead, and so is what one of them passes over in silence, such as a last line that ends in a backslash.
//
// Names of files are relative to the directory in which condor_submit_dag is run, or to the DIR of the splice they are
// in, and not to the file that they are written in.
package dagfile
