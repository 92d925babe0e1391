package submitfile

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"htc.cern.ch/htcd/internal/classad"
)

// call evaluates a function other than $ENV.
func (e *expander) call(m macro) (string, error) {
	args := strings.Split(m.body, ",")
	switch m.function {
	case "CHOICE":
		return e.choice(args)
	case "SUBSTR":
		return e.substring(args)
	case "INT", "REAL", "STRING":
		name, format, _ := strings.Cut(m.body, ",")
		value, err := e.named(name)
		if err != nil {
			return "", err
		}
		return converted(m.function, value, format)
	case "EVAL":
		value, err := e.named(m.body)
		if err != nil {
			return "", err
		}
		if text, err := constant(value); err == nil {
			return text, nil
		}
		return "", fmt.Errorf("%s is an expression that condor_submit evaluates: write its value", value)
	case "BASENAME":
		m.function = "Fnx"
	case "DIRNAME":
		m.function = "Fp"
	}
	path, err := e.named(m.body)
	if err != nil {
		return "", err
	}
	return filename(m.function, path)
}

// named is the value of a macro of that name with its macros replaced, or else the text itself.
func (e *expander) named(name string) (string, error) {
	value, defined := e.lookup(name)
	if !defined {
		value = name
	}
	return e.expand(value)
}

// constant is the value of an expression that is a number or a text.
func constant(expression string) (string, error) {
	if x, err := classad.ParseExpr(expression); err == nil {
		if l, is := x.(*classad.Literal); is {
			if s, is := l.Value.Str(); is {
				return s, nil
			}
		}
	}
	x, err := evaluate(expression)
	if err != nil || x.real { // which has 15 digits there
		return "", cmp.Or(err, errors.New("it is no whole number"))
	}
	return strconv.FormatInt(x.i, 10), nil
}

// choice is $CHOICE(INDEX,LIST) or $CHOICE(INDEX,A,B,...).
func (e *expander) choice(args []string) (string, error) {
	if len(args) < 2 {
		return "", errors.New("expected an index and a list")
	}
	index, err := e.number(trim(args[0]))
	if err != nil {
		return "", err
	}
	list := args[1:]
	if len(list) == 1 {
		name := trim(list[0])
		value, defined := e.lookup(name)
		if !defined {
			return "", fmt.Errorf("there is no list %q", name)
		}
		if value, err = e.expand(value); err != nil {
			return "", err
		}
		list = strings.Split(value, ",")
	}
	if index < 0 || index >= int64(len(list)) {
		return "", fmt.Errorf("the index %d is out of range: the list has %d elements", index, len(list))
	}
	return trim(list[index]), nil
}

// substring is $SUBSTR(NAME,START) or $SUBSTR(NAME,START,LENGTH); what is negative counts from the end.
func (e *expander) substring(args []string) (string, error) {
	if len(args) < 2 {
		return "", errors.New("expected a macro's name and where to begin")
	}
	value, _ := e.lookup(args[0])
	value, err := e.expand(value)
	if err != nil {
		return "", err
	}
	cut := func(s, arg string) (int, error) {
		n, err := e.number(arg)
		if n < 0 {
			n += int64(len(s))
		}
		return int(min(max(n, 0), int64(len(s)))), err
	}
	start, err := cut(value, args[1])
	if err != nil {
		return "", err
	}
	value = value[start:]
	if len(args) > 2 {
		length, err := cut(value, strings.Join(args[2:], ","))
		if err != nil {
			return "", err
		}
		value = value[:length]
	}
	return value, nil
}

// number is the value of a macro, or of the text itself, as a whole number.
func (e *expander) number(name string) (int64, error) {
	value, err := e.named(name)
	if err != nil {
		return 0, err
	}
	return whole(value)
}

// formatRE matches what printf takes for one argument, with text around it.
var formatRE = regexp.MustCompile(`^([^%]*)%([-+ #0]*)([0-9]{0,3})([.][0-9]{0,2})?([diuxXoeEfFgGs])([^%]*)$`)

// converted is a number or text as a printf format writes it.
func converted(function, value, format string) (string, error) {
	var verbs, verb string
	var x any
	switch function {
	case "INT":
		n, err := whole(value)
		if err != nil {
			return "", err
		}
		if format == "" {
			return strconv.FormatInt(n, 10), nil
		}
		verbs, x = "diuxXo", n
	case "REAL":
		f, err := real64(value)
		if err != nil {
			return "", err
		}
		if format == "" {
			return strconv.FormatFloat(f, 'G', 16, 64), nil
		}
		verbs, x = "eEfFgG", f
	default:
		if x, err := classad.ParseExpr(value); err == nil {
			if l, is := x.(*classad.Literal); is {
				if s, is := l.Value.Str(); is {
					value = s
				}
			}
		}
		if format == "" {
			return value, nil
		}
		verbs, x = "s", value
	}
	parts := formatRE.FindStringSubmatch(format)
	if parts == nil || !strings.Contains(verbs, parts[5]) {
		return "", fmt.Errorf("expected a format such as %%03d or %%.2f, found %q", format)
	}
	if verb = parts[5]; verb == "i" || verb == "u" {
		verb = "d"
	}
	text := fmt.Sprintf(parts[1]+"%"+parts[2]+parts[3]+parts[4]+verb+parts[6], x)
	if function == "REAL" && !strings.Contains(text, ".") {
		text += ".0"
	}
	return text, nil
}

var decimalRE = regexp.MustCompile(`^[-+]?[0-9.]+([eE][-+]?[0-9]+)?$`)

// whole evaluates an expression to a whole number; a fraction is cut off.
func whole(text string) (int64, error) {
	if n, err := strconv.ParseInt(trim(text), 10, 64); err == nil { // 010 is 10, which an expression has as 8
		return n, nil
	}
	x, err := evaluate(text)
	switch {
	case err != nil:
		return 0, err
	case x.real && math.Abs(x.f) < 1<<62:
		return int64(x.f), nil
	case x.real:
		return 0, fmt.Errorf("%s is no whole number", trim(text))
	}
	return x.i, nil
}

func real64(text string) (float64, error) {
	if f, err := strconv.ParseFloat(trim(text), 64); err == nil && decimalRE.MatchString(trim(text)) {
		return f, nil
	}
	x, err := evaluate(text)
	return x.float(), err
}
