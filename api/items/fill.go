package items

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// placeRE matches what Fill replaces.
var placeRE = regexp.MustCompile(`\{\{(?:item\.([A-Za-z_][A-Za-z0-9_]*)|proc)\}\}`)

// Varies reports whether Fill replaces anything in a text.
func Varies(text string) bool { return placeRE.MatchString(text) }

// Fill replaces {{proc}} in a text by a job's number, and {{item.NAME}} by the value of a variable of its item, which
// consists of lines NAME=value. It fails if the item has no such variable.
func Fill(text string, proc int, item string) (string, error) {
	var missing error
	filled := placeRE.ReplaceAllStringFunc(text, func(place string) string {
		name := placeRE.FindStringSubmatch(place)[1]
		if name == "" {
			return strconv.Itoa(proc)
		}
		value, found := valueIn(item, name)
		if !found && missing == nil {
			missing = fmt.Errorf("found %s, and the item of job %d has no variable %s", place, proc, name)
		}
		return value
	})
	return filled, missing
}

func valueIn(item, name string) (string, bool) {
	for line := range strings.Lines(item) {
		if key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "="); key == name {
			return value, true
		}
	}
	return "", false
}
