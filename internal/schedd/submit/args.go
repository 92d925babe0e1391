package submit

import (
	"regexp"
	"strings"

	"htc.cern.ch/htcd/internal/schedd/condor"
)

// argumentRE matches what is replaced in an argument: the value of a variable that only this job has, its number, its
// cluster, and the number of the node.
var argumentRE = regexp.MustCompile(`\{\{(?:item\.([A-Za-z_][A-Za-z0-9_]*)|proc|cluster|node)\}\}`)

const (
	maxArgs      = 1000
	maxArgsBytes = 64 << 10 // Linux takes 128 KiB in one argument, and at least as much in all
)

// argList is a list of arguments by the name that a user has for it.
type argList struct {
	name string
	args []string
}

// argLists returns the arguments of the script and of the other parts.
func (d Description) argLists() []argList {
	lists := []argList{{"spec.script.args", d.Args}}
	for _, p := range d.parts() {
		lists = append(lists, argList{"spec.script." + p.name + ".args", p.Args})
	}
	return lists
}

// checkArgs refuses arguments that no program could be given, whatever the items are.
func (d Description) checkArgs() error {
	for _, l := range d.argLists() {
		if len(l.args) > maxArgs {
			return condor.Refusal(
				"%s: expected at most %d, found %d: put them into a file that the script reads",
				l.name,
				maxArgs,
				len(l.args),
			)
		}
		for i, arg := range l.args {
			if strings.ContainsRune(arg, 0) {
				return condor.Refusal(
					"%s[%d]: found a NUL character, expected none: encode binary data, as base64 for example",
					l.name,
					i,
				)
			}
		}
	}
	return d.checkArgsOf("", "")
}

// checkArgsOf refuses arguments that a job with these variables could not be given. Without a job it is their length
// alone that counts.
func (d Description) checkArgsOf(job, variables string) error {
	for _, l := range d.argLists() {
		if err := l.check(job, variables); err != nil {
			return err
		}
	}
	return nil
}

func (l argList) check(job, variables string) error {
	if job != "" && !strings.Contains(strings.Join(l.args, "\n"), "{{item.") {
		return nil
	}
	values := map[string]string{}
	for line := range strings.Lines(variables) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		values[name] = value
	}
	size := 0
	for i, arg := range l.args {
		size += len(arg) + 1
		for _, m := range argumentRE.FindAllStringSubmatch(arg, -1) {
			value, there := values[m[1]]
			if m[1] != "" && job != "" && !there {
				return condor.Refusal(
					"%s[%d]: found %s, and %s has no variable %s: expected one of its items",
					l.name,
					i,
					m[0],
					job,
					m[1],
				)
			}
			size += len(value)
		}
	}
	if size > maxArgsBytes {
		return condor.Refusal(
			"%s: expected at most 64 KiB together, found %d bytes: put them into a file that the script reads",
			l.name,
			size,
		)
	}
	return nil
}

// argumentsShell returns the shell's function that runs the script with its arguments, and what else there is to run.
func (d Description) argumentsShell() string {
	name, more := "arguments", d.partsShell()
	if more != "" {
		name = "run_script"
	}
	words := argumentWords(d.Args)
	if len(d.Args) == 0 && d.Executable != "" {
		words = ""
	}
	return name + "() {\n\trun \"$@\"" + words + "\n}\n" + more
}

// argumentWords returns the arguments of a script as words of the wrapper: without any, the job's number.
func argumentWords(args []string) string {
	if len(args) == 0 {
		return ` "$proc"`
	}
	var b strings.Builder
	for _, arg := range args {
		b.WriteString(" " + shellWord(arg))
	}
	return b.String()
}

// shellWord returns a text as a word of the wrapper. What is replaced is written as an expansion in double quotes
// between quoted text, so that nothing in it means anything to the shell.
func shellWord(text string) string {
	var b strings.Builder
	from := 0
	for _, m := range argumentRE.FindAllStringSubmatchIndex(text, -1) {
		b.WriteString(ShellQuote(text[from:m[0]]))
		switch name := text[m[0]:m[1]]; {
		case m[2] >= 0:
			b.WriteString(`"$(item ` + text[m[2]:m[3]] + `)"`)
		case name == "{{proc}}":
			b.WriteString(`"$proc"`)
		case name == "{{node}}":
			b.WriteString(`"${rank:-0}"`)
		default:
			b.WriteString(`"$cluster"`)
		}
		from = m[1]
	}
	b.WriteString(ShellQuote(text[from:]))
	return b.String()
}
