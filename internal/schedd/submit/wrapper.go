package submit

import (
	_ "embed"
	"fmt"
	"strings"
	"time"

	"htc.cern.ch/htcd/internal/schedd/condor"
)

//go:embed wrapper.sh
var wrapperBody string

//go:embed callback.sh
var callbackBody string

//go:embed outputs.sh
var outputsBody string

//go:embed credentials.sh
var credentialsBody string

//go:embed keep.sh
var keepBody string

//go:embed dagnode.sh
var nodeBody string

// What DAGMan's job and launchers run at the schedd's host begins in the same way.
var (
	//go:embed onhost.sh
	onHostBody string
	//go:embed dagman.sh
	dagmanBody string
	//go:embed factory.sh
	factoryBody string

	starterBody = onHostBody + dagmanBody
)

const defaultCallbackDeadline = 60 * time.Second

// wrapper returns the text of a job's executable: a head of assignments, parts.sh for one with other parts than its
// script, outputs.sh for a job with outputs, credentials.sh for one with credentials, keep.sh for one whose container
// stays, checkpoint.sh for one with checkpoints, multinode.sh for one of several nodes, dagnode.sh for a node of a DAG,
// callback.sh and wrapper.sh.
func (d Description) wrapper(image string, successes []int, node *nodeHead) string {
	deadline := d.CallbackDeadline
	if deadline == 0 {
		deadline = defaultCallbackDeadline
	}
	kind := "HTCJob"
	if node != nil {
		kind = "HTCWorkflow"
	}
	gathers := len(d.Outputs) > 0 || node != nil
	var b strings.Builder
	fmt.Fprintf(
		&b,
		"#!/bin/sh\n# Runs the script of the %s %s/%s in its container and reports its end to htcd.\n",
		kind,
		d.Tag.Namespace,
		d.Tag.Name,
	)
	b.WriteString("proc=${1:-0}\n")
	set := func(name, value string) { b.WriteString(name + "=" + ShellQuote(value) + "\n") }
	set("name", d.Tag.Name)
	set("namespace", d.Tag.Namespace)
	set("image", image)
	set("workdir", d.Workdir)
	set("writable", one(d.WritableRoot))
	set("binds", strings.Join(d.Binds, " "))
	set("url", d.CallbackURL)
	set("tells", one(d.CallbackStart))
	set("traceparent", d.Traceparent)
	set("ca", strings.TrimSuffix(d.CallbackCA, "\n"))
	set("also", d.alsoTrusted())
	set("inputs", d.inputNames(false))
	set("archives", d.archives())
	set("moves", d.inputMoves())
	set("secrets", d.inputNames(true))
	set("credentials", d.credentialWords())
	set("login", d.registryLogin())
	set("plugins", d.writingPlugins())
	set("pull", d.PullURL)
	set("deadline", fmt.Sprint(int64(deadline/time.Second)))
	set("interactive", positive(d.Interactive))
	set("keep", positive(d.KeepOnFailure))
	set("nodes", positive(int64(d.Nodes)))
	d.setCheckpoint(set)
	set("declared", strings.Join(outputPaths(d.Outputs), "\n"))
	set("successes", strings.Trim(fmt.Sprint(successes), "[]"))
	set("noimage", node.noImage())
	if d.Interactive > 0 {
		set("over", fmt.Sprint(int(condor.InteractiveSignal)))
	}
	if gathers {
		set("lacking", fmt.Sprint(int(condor.MissingSignal)))
		set("sent", d.sentOutputs())
	}
	if node != nil {
		b.WriteString("node=$proc\n")
		set("rest", node.rest)
		set("handed", strings.Join(node.handed, "\n"))
		set("several", node.several)
		set("both", d.bothOutputs())
		set("always", node.always)
		set("timed", node.timed)
	} else {
		set("node", "")
	}
	set("program", d.program())
	b.WriteString("set --" + commandWords(d.words()) + "\n")
	b.WriteString(d.argumentsShell())
	b.WriteString(d.ownMoves())
	if gathers {
		b.WriteString(outputsBody)
	}
	if len(d.Credentials) > 0 {
		b.WriteString(credentialsBody)
	}
	if d.archives() != "" {
		b.WriteString(unpackBody)
	}
	if d.KeepOnFailure > 0 {
		b.WriteString(keepBody)
	}
	if d.Checkpoint != nil {
		b.WriteString(checkpointBody)
	}
	if d.Nodes > 0 {
		b.WriteString(multinodeBody)
	}
	if node != nil {
		b.WriteString(nodeBody)
	}
	b.WriteString(callbackBody)
	b.WriteString(wrapperBody)
	return b.String()
}

// nodeAuthorities is where systems keep the authorities that they trust: Debian's and SUSE's, Red Hat's, Alpine's.
const nodeAuthorities = "/etc/ssl/certs/ca-certificates.crt /etc/ssl/ca-bundle.pem /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/cert.pem"

// alsoTrusted lists the files with further authorities.
func (d Description) alsoTrusted() string {
	if !d.CallbackAlso {
		return ""
	}
	return nodeAuthorities
}

// one returns 1, or nothing.
func one(is bool) string {
	if is {
		return "1"
	}
	return ""
}

// positive returns a number, or nothing for 0.
func positive(n int64) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprint(n)
}

// commandWords returns the words of a command as words of the wrapper.
func commandWords(command string) string {
	var b strings.Builder
	for w := range strings.FieldsSeq(command) {
		b.WriteString(" " + ShellQuote(w))
	}
	return b.String()
}

// ShellQuote quotes s for any shell; s contains no NUL.
func ShellQuote(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
