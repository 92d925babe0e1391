// Package convert makes HTCJobs of submit description files: manifests that kubectl applies, with the small files that
// the jobs need in ConfigMaps, and a table that says of each line of the file what has become of it. No line is dropped
// without a word.
//
// A job runs the file's executable as it is or, where that does not do, by a few lines of sh, which are the HTCJob's
// script: they give it its standard input, its files their names, and those of its variables their values that differ
// from job to job. What differs comes from the job's number or from the HTCJob's items. Jobs that differ in anything
// else, such as what they request, become several HTCJobs.
//
// DAG does the same for a DAG file: an HTCWorkflow, whose steps run what an HTCJob of the nodes' submit files would.
// Variables that differ between the jobs of a step are chosen by the script, by the job's number, or are the sequences'
// items.
package convert
