package setting

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
)

// checked is a flag's value that says what is allowed.
type checked struct {
	pflag.Value
	kind Kind
	// said returns what was set, each word that the kind is about by itself; nil: the text that was given.
	said func() []string
}

// Set refuses a wrong value. The flag may have it nevertheless: whoever gave it cannot go on.
func (c *checked) Set(text string) error {
	if c.said != nil && strings.ContainsAny(strings.TrimSpace(text), "\r\n") { // pflag would take the first line alone
		return &wrong{value: text, want: "one line; in it, each " + c.kind.Want}
	}
	if err := c.Value.Set(text); err != nil {
		return &wrong{value: text, want: c.kind.Want}
	}
	if text == "" && c.said == nil && c.kind.empty {
		return nil
	}
	words := []string{text}
	if c.said != nil {
		words = c.said()
	}
	for _, word := range words {
		err := c.kind.Check(word)
		if errors.Is(err, errWrong) {
			return &wrong{value: word, want: c.kind.Want}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// wrong is a value that is not of its flag's kind.
type wrong struct{ value, want string }

// longest bounds how much of a value an error repeats.
const longest = 100

func (w *wrong) Error() string {
	value := w.value
	if len(value) > longest {
		value = value[:longest] + "..."
	}
	if !plainRE.MatchString(value) {
		value = strconv.Quote(value)
	}
	return value + ": want " + w.want
}

var plainRE = regexp.MustCompile(`^[A-Za-z0-9.+-]+$`)

// Explain returns an error of flags in words: the flag's name, or the one by which it was given, and what its value may
// be.
func Explain(err error, name string) error {
	invalid, is := errors.AsType[*pflag.InvalidValueError](err)
	if !is {
		return err
	}
	if name == "" {
		name = "--" + invalid.GetFlag().Name
	}
	if w, is := errors.AsType[*wrong](err); is {
		return fmt.Errorf("%s %w", name, w)
	}
	return fmt.Errorf("%s: %w", name, invalid.Unwrap())
}

// Allowed returns what a flag's value may be; empty for a flag that is not this package's.
func Allowed(f *pflag.Flag) string {
	if c, is := f.Value.(*checked); is {
		if c.said != nil {
			return "each " + c.kind.Want
		}
		return c.kind.Want
	}
	return ""
}

// add makes the flag that was just defined a checked one.
func add(f *pflag.FlagSet, name string, kind Kind, said func() []string) {
	flag := f.Lookup(name)
	flag.Value = &checked{flag.Value, kind, said}
	switch flag.DefValue { // of a type that is not its own, pflag shows these
	case "[]":
		flag.DefValue = ""
	case "0s":
		flag.DefValue = "0"
	}
}

// named splits "output,o" into a flag's name and its letter.
func named(name string) (long, letter string) {
	long, letter, _ = strings.Cut(name, ",")
	return long, letter
}

// Text defines a flag for words of a kind. A name may be followed by a comma and its letter, here and below. Empty is
// allowed where it is the default.
func Text(f *pflag.FlagSet, at *string, name, def string, kind Kind, usage string) {
	kind.empty = def == ""
	long, letter := named(name)
	f.StringVarP(at, long, letter, def, usage)
	add(f, long, kind, nil)
}

// List defines a flag for words of a kind with commas between them.
func List(f *pflag.FlagSet, at *[]string, name string, def []string, kind Kind, usage string) {
	f.StringSliceVar(at, name, def, usage)
	add(f, name, kind, func() []string { return *at })
}

// Repeated defines a flag that can be given several times, each time with a word of a kind.
func Repeated(f *pflag.FlagSet, at *[]string, name string, kind Kind, usage string) {
	long, letter := named(name)
	f.StringArrayVarP(at, long, letter, nil, usage)
	add(f, long, kind, func() []string { return *at })
}

// Bool defines a flag that is true or false.
func Bool(f *pflag.FlagSet, at *bool, name string, def bool, usage string) {
	long, letter := named(name)
	f.BoolVarP(at, long, letter, def, usage)
	add(f, long, Is("true or false", func(string) bool { return true }), nil)
}

// Int defines a flag for a whole number from least to most.
func Int(f *pflag.FlagSet, at *int, name string, def, least, most int, usage string) {
	long, letter := named(name)
	f.IntVarP(at, long, letter, def, usage)
	add(f, long, between("a whole number", at, least, most, strconv.Itoa), nil)
}

// Float defines a flag for a number from least to most.
func Float(f *pflag.FlagSet, at *float64, name string, def, least, most float64, usage string) {
	f.Float64Var(at, name, def, usage)
	add(
		f,
		name,
		between("a number", at, least, most, func(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }),
		nil,
	)
}

// Duration defines a flag for a time from least to most, such as 90s or 1h30m. A default of 0 is allowed, too.
func Duration(f *pflag.FlagSet, at *time.Duration, name string, def, least, most time.Duration, usage string) {
	f.DurationVar(at, name, def, usage)
	add(f, name, between("a time", at, least, most, shortly), nil)
	if c := f.Lookup(name).Value.(*checked); def == 0 && least > 0 {
		check := c.kind.Check
		c.kind = Kind{Want: "0, or " + c.kind.Want, Check: func(text string) error {
			if *at == 0 {
				return nil
			}
			return check(text)
		}}
	}
}

// shortly writes 1h for 1h0m0s.
func shortly(d time.Duration) string {
	text := d.String()
	for _, none := range []string{"0s", "0m"} {
		if rest, found := strings.CutSuffix(text, none); found && rest != "" &&
			!strings.ContainsAny(rest[len(rest)-1:], "0123456789") {
			text = rest
		}
	}
	return text
}

// Size defines a flag for a size in whole Mi.
func Size(f *pflag.FlagSet, at *resource.QuantityValue, name, def, usage string) {
	at.Quantity = resource.MustParse(def)
	f.Var(at, name, usage)
	add(f, name, Is("0 to 1Pi in whole Mi, such as 500Mi or 2Gi", func(string) bool {
		return at.Sign() >= 0 && at.Cmp(mostSize) <= 0 && at.Value()%(1<<20) == 0
	}), nil)
}

var mostSize = resource.MustParse("1Pi")

func between[T cmp.Ordered](what string, at *T, least, most T, write func(T) string) Kind {
	return Is(
		fmt.Sprintf("%s from %s to %s", what, write(least), write(most)),
		func(string) bool { return *at >= least && *at <= most },
	)
}

// OneOf is a kind of words that are listed.
func OneOf(words ...string) Kind {
	last := len(words) - 1
	want := words[last]
	if last > 0 {
		want = strings.Join(words[:last], ", ") + " or " + want
	}
	return Is(want, func(text string) bool { return slices.Contains(words, text) })
}

// formerName marks flags that Former has defined.
const formerName = "htcd_former_name"

// Former keeps a name that a flag had before. Both set the same value.
func Former(f *pflag.FlagSet, former, name string) {
	flag := *f.Lookup(name)
	flag.Name, flag.Shorthand, flag.DefValue = former, "", ""
	value, _ := pflag.UnquoteUsage(&flag)
	flag.Usage = "the former name of --" + name + ", with `" + value + "`; as a variable it overrides the new one"
	flag.Annotations = map[string][]string{formerName: {name}}
	f.AddFlag(&flag)
}
