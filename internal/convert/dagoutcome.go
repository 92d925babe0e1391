package convert

import (
	"regexp"
	"strings"

	"htc.cern.ch/htcd/internal/convert/submitfile"
)

// What DAGMan tells its FINAL node in $(DAG_STATUS) and $(FAILED_COUNT), the script of finally has in variables. No
// file holds these characters.
const (
	statusPlace = "\x03"
	failedPlace = "\x04"
)

var outcomeRE = regexp.MustCompile(statusPlace + "|" + failedPlace)

// toldOnly takes how the rest ended out of the value of a command that is not the program's to read.
func (v *view) toldOnly(command, value string, by *submitfile.Statement) string {
	if command == "arguments" || command == "environment" || !outcomeRE.MatchString(value) {
		return value
	}
	v.say(by, Cannot, "only the program learns how the other nodes ended",
		"$(DAG_STATUS) and $(FAILED_COUNT) in arguments or environment", "")
	return outcomeRE.ReplaceAllString(value, "")
}

// outcomes lets a script of finally have the values in its quoted words.
func outcomes(source string) string {
	if !outcomeRE.MatchString(source) {
		return source
	}
	for place, value := range map[string]string{statusPlace: `"$status"`, failedPlace: `"$HTC_FAILED_COUNT"`} {
		source = strings.ReplaceAll(source, "'"+place+"'", value)
		source = strings.ReplaceAll(source, place, "'"+value+"'")
	}
	return "status=2 # as DAGMan's: 0 if all went well\n[ \"$HTC_OUTCOME\" = Failed ] || status=0\n" + source
}
