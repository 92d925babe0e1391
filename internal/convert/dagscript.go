package convert

import (
	"path"
	"strconv"
	"strings"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/convert/dagfile"
)

// scripts makes of what DAGMan runs before and after the nodes of a step what runs in their jobs. What has become of it
// is in s.ran.
func (s *stepper) scripts(a *assembly) {
	s.ran = map[dagfile.Place]Line{}
	for _, k := range []struct {
		of    func(*dagfile.Node) *dagfile.Script
		post  bool
		field string
		to    **v1alpha1.ScriptPart
	}{
		{func(n *dagfile.Node) *dagfile.Script { return n.Pre }, false, "script.before", &a.spec.Script.Before},
		{func(n *dagfile.Node) *dagfile.Script { return n.Post }, true, "script.after", &a.spec.Script.After},
	} {
		script := k.of(s.nodes[0])
		if script == nil {
			continue
		}
		source, line := s.inJob(a, script, k.post)
		if source != "" {
			*k.to = &v1alpha1.ScriptPart{Source: source}
			line = Line{
				Verdict: Taken,
				Words: k.field + " of the step: it runs in the job, on the execute node, with the files " +
					"of the job alone, and what it prints is in the job's output",
			}
		}
		for _, n := range s.nodes { // each may have a line of its own
			s.ran[k.of(n).Place] = line
		}
	}
}

// inJob is the text of sh that runs a script, or why there is none.
func (s *stepper) inJob(a *assembly, script *dagfile.Script, post bool) (string, Line) {
	cannot := func(why, instead string) (string, Line) {
		return "", Line{Verdict: Cannot, Words: why, Instead: instead}
	}
	switch {
	case script.Deferred:
		return cannot("what runs in a job is not run again later by itself", "a loop in the script, with a sleep")
	case len(a.g.jobs) > len(s.nodes):
		return cannot(
			"the node has several jobs, and DAGMan runs its scripts once for all",
			"a step of its own before or after",
		)
	case post && len(a.moved) > 0 && !a.g.parts[0].named, !post && (a.places || s.unpacks()):
		return cannot(
			"the job's files get their names at the beginning of its script",
			"the beginning or the end of the step's script",
		)
	case post && (a.spec.Retries != nil || a.spec.SuccessExitCodes != nil):
		return cannot(
			"script.after decides about each try of the job, while HTCondor tries it again, or takes it for a success, before "+
				"DAGMan runs POST",
			"RETRY of the node in place of max_retries, or no success_exit_code",
		)
	}
	var words []string
	for _, word := range script.Words[1:] {
		told := s.told(a, word, post)
		if told == "" {
			return cannot(
				"only DAGMan knows "+word,
				"$JOB, $RETRY, $MAX_RETRIES, and after the job $RETURN, $SUCCESS and $PRE_SCRIPT_RETURN",
			)
		}
		words = append(words, told)
	}
	run := []string{"exec", quote(script.Words[0])}
	var lines []string
	if name := script.Words[0]; !systemRE.MatchString(name) {
		in, err := a.file(name, "executable")
		if err != nil {
			return cannot(err.Error(), fileInstead(err))
		}
		run[1] = quote("./" + a.input(in, path.Base(name)))
		lines = append(lines, "chmod +x "+run[1])
	}
	return strings.Join(append(lines, strings.Join(append(run, words...), " ")), "\n") + "\n", Line{}
}

// told is a word of a script as sh is to read it. Words that DAGMan replaces are words of their own, in any case.
func (s *stepper) told(a *assembly, word string, post bool) string {
	n := s.nodes[0]
	if !strings.HasPrefix(word, "$") {
		return quote(word)
	}
	switch macro := strings.ToUpper(word); {
	case (macro == "$JOB" || macro == "$NODE") && len(s.nodes) == 1:
		return quote(n.Job())
	case macro == "$JOB" || macro == "$NODE":
		return `"${` + a.variable("JOB", func(i int) string { return s.nodes[i].Job() }) + `}"`
	case macro == "$RETRY":
		return `"$HTC_RETRY"`
	case macro == "$MAX_RETRIES":
		return strconv.Itoa(n.Retries)
	case !post:
		return ""
	case macro == "$RETURN", macro == "$EXIT_CODES":
		return `"$RETURN"`
	case macro == "$SUCCESS":
		return `"$([ "$RETURN" = 0 ] && echo True || echo False)"`
	case macro == "$JOB_COUNT":
		return "1"
	case macro == "$PRE_SCRIPT_RETURN" && n.Pre == nil:
		return "-1"
	case macro == "$PRE_SCRIPT_RETURN":
		return "0"
	}
	return ""
}

// scripted keeps the worst that a step says of a script.
func (b *dagBuild) scripted(s *stepper) {
	for at, l := range s.ran {
		if before, said := b.ran[at]; !said || worse(l.Verdict, before.Verdict) {
			b.ran[at] = l
		}
	}
}

// script says what has become of a SCRIPT statement, which is that of these nodes.
func (b *dagBuild) script(st dagfile.Statement, nodes []*dagfile.Node) Line {
	kind := scriptKind(st.Rest)
	if !b.options.ScriptsInJobs || kind == "HOLD" {
		return scriptLine(st.Rest)
	}
	worst := Line{Verdict: Moot, Words: "it is that of no node which runs: of several for one DAGMan runs the last"}
	for _, n := range nodes {
		var line Line
		switch {
		case n.Done:
			continue
		case n.Kind == dagfile.Subdag || n.Noop:
			line = Line{
				Verdict: Cannot,
				Words:   n.Name + " has no job of its own in which it could run",
				Instead: "a step of its own",
			}
		default:
			var said bool
			if line, said = b.ran[st.Place]; !said {
				line = Line{Verdict: Cannot, Words: n.Name + " does not run here", Instead: "see its line"}
			}
		}
		if worse(line.Verdict, worst.Verdict) {
			worst = line
		}
	}
	return worst
}
