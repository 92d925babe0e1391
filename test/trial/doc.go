// Package trial is one test's place in the running lab: a namespace of its own in Kubernetes, and the short words in
// which a test says what it applies, waits for and asks HTCondor.
package trial
