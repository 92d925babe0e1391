package dagfile

import "strings"

// A line is a statement with its continuations and, if it opens one, its submit description.
type line struct {
	Statement
	description *Description
	closing     string // what follows the end of the description
}

// commands are the commands as the manual writes them, by their spelling in capitals and with _ instead of -.
var commands = map[string]string{}

func init() {
	for c := range strings.FieldsSeq(`JOB SUBDAG FINAL SERVICE PROVISIONER SUBMIT-DESCRIPTION SPLICE SCRIPT PARENT WEAK RETRY
		ABORT-DAG-ON DOT VARS PRIORITY CATEGORY MAXJOBS CONFIG SET_JOB_ATTR ENV NODE_STATUS_FILE SAVE_POINT_FILE REJECT
		JOBSTATE_LOG PRE_SKIP DONE CONNECT PIN_IN PIN_OUT INCLUDE TOLERANCE`) {
		commands[strings.ReplaceAll(c, "-", "_")] = c
	}
}

// lines cuts the text of a file into its statements.
func lines(file, text string) ([]line, error) {
	var out []line
	raw := strings.Split(strings.TrimRight(text, " \t\r\n"), "\n")
	for i := 0; i < len(raw); i++ {
		at := Place{file, i + 1}
		s := strings.TrimSpace(raw[i])
		if s == "" || isComment(s) {
			continue
		}
		s, last, err := continued(at, s, raw, i)
		if err != nil {
			return nil, err
		}
		i = last
		word, rest := cut(s)
		l := line{Statement: Statement{at, commands[strings.ReplaceAll(strings.ToUpper(word), "-", "_")], rest}}
		if l.Command == "" {
			return nil, unknown(at, word)
		}
		if i, err = l.describe(raw, i); err != nil {
			return nil, err
		}
		out = append(out, l)
	}
	return out, nil
}

func isComment(s string) bool { return s[0] == '#' || strings.HasPrefix(s, "//") }

func unknown(at Place, word string) error {
	switch {
	case strings.HasPrefix(word, "\ufeff"):
		return &Error{at, "the file begins with a byte order mark, which DAGMan refuses: save it without one"}
	case strings.EqualFold(word, "NODE"):
		return &Error{at, word + " is no command of DAGMan 23 and 25: write JOB, which is the same"}
	case strings.EqualFold(word, "DATA"):
		return &Error{at, "DATA nodes are gone from HTCondor: write a JOB whose submit file transfers the data"}
	}
	return &Error{at, word + " is no command of DAGMan"}
}

// continued joins a statement that begins at raw[i] with the lines that continue it, and says which was the last.
func continued(at Place, s string, raw []string, i int) (string, int, error) {
	var b strings.Builder
	for {
		before, more := strings.CutSuffix(s, `\`)
		b.WriteString(before)
		if !more {
			return b.String(), i, nil
		}
		if before != "" && before == strings.TrimRight(before, " \t") {
			return "", 0, &Error{
				at,
				`there is no blank before the \ at the end of a line, and DAGMan 23 and 25 read that differently: write one`,
			}
		}
		for {
			if i++; i == len(raw) {
				return "", 0, &Error{at,
					`the last line ends in \, so DAGMan passes the statement over: leave the \ out`}
			}
			// 25 passes empty lines over, but then takes the next statement for the rest of this one.
			if s = strings.TrimSpace(raw[i]); s == "" || !isComment(s) {
				break
			}
		}
	}
}

// describe reads the submit description that a statement opens, which ends at the line that it returns.
func (l *line) describe(raw []string, i int) (int, error) {
	switch l.Command {
	case "JOB", "FINAL", "SERVICE", "PROVISIONER", "SUBMIT-DESCRIPTION":
	default:
		return i, nil
	}
	_, opening := cut(l.Rest)
	end := "}"
	if tag, ok := strings.CutPrefix(opening, "@="); ok {
		if end = "@" + tag; tag == "" || strings.ContainsAny(tag, " \t") {
			return i, &Error{l.Place, "after @= stands one word, and @ with the same word ends the description"}
		}
	} else if opening != "{" {
		if strings.HasPrefix(opening, "{") {
			return i, &Error{l.Place, "the submit description begins on the line after its {"}
		}
		return i, nil
	}
	d := &Description{Place: Place{l.File, i + 2}}
	var b strings.Builder
	for i++; i < len(raw); i++ {
		s := strings.TrimSpace(raw[i])
		if s == end || strings.HasPrefix(s, end+" ") {
			if strings.HasSuffix(strings.TrimRight(b.String(), "\n"), `\`) {
				return i, &Error{Place{l.File, i}, `DAGMan 23 takes the next line, ` + end +
					`, for a continuation, and 25 for the end of the description: leave the \ out`}
			}
			d.Text, l.description = b.String(), d
			l.closing = strings.TrimSpace(s[len(end):])
			return i, nil
		}
		b.WriteString(strings.TrimSuffix(raw[i], "\r") + "\n")
	}
	return i, &Error{l.Place, "the submit description that begins here has no end: a line with " + end}
}
