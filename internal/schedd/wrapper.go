package schedd

import (
	_ "embed"
	"fmt"
	"strings"
	"time"
)

//go:embed wrapper.sh
var wrapperBody string

//go:embed outputs.sh
var outputsBody string

//go:embed credentials.sh
var credentialsBody string

const defaultCallbackDeadline = 60 * time.Second

// wrapper returns the text of job.sh, the job's executable: a head of assignments, outputs.sh for a job with outputs, and
// wrapper.sh.
func (d Description) wrapper(image string, successes []int) string {
	deadline := d.CallbackDeadline
	if deadline == 0 {
		deadline = defaultCallbackDeadline
	}
	var b strings.Builder
	fmt.Fprintf(&b, "#!/bin/sh\n# Runs the script of the HTCJob %s/%s in its container and reports its end to htcd.\n", d.Tag.Namespace, d.Tag.Name)
	b.WriteString("proc=${1:-0}\n")
	set := func(name, value string) { b.WriteString(name + "=" + shellQuote(value) + "\n") }
	set("name", d.Tag.Name)
	set("namespace", d.Tag.Namespace)
	set("image", image)
	set("binds", strings.Join(d.Binds, " "))
	set("url", d.CallbackURL)
	set("ca", strings.TrimSuffix(d.CallbackCA, "\n"))
	set("inputs", d.inputNames(false))
	set("moves", d.inputMoves())
	set("secrets", d.inputNames(true))
	set("credentials", d.credentialWords())
	set("login", d.registryLogin())
	set("plugins", d.writingPlugins())
	set("pull", d.PullURL)
	set("deadline", fmt.Sprint(int64(deadline/time.Second)))
	set("declared", strings.Join(outputPaths(d.Outputs), "\n"))
	if len(d.Outputs) > 0 {
		set("successes", strings.Trim(fmt.Sprint(successes), "[]"))
		set("lacking", fmt.Sprint(int(missingSignal)))
		set("sent", d.sentOutputs())
	}
	b.WriteString("set --")
	for _, w := range strings.Fields(d.Command) {
		b.WriteString(" " + shellQuote(w))
	}
	b.WriteString("\n")
	if len(d.Outputs) > 0 {
		b.WriteString(outputsBody)
	}
	if len(d.Credentials) > 0 {
		b.WriteString(credentialsBody)
	}
	b.WriteString(wrapperBody)
	return b.String()
}

// shellQuote quotes s for any shell; s contains no NUL.
func shellQuote(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
