package setting

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

// Group is a heading of a page of settings, above the flag that it begins with.
type Group struct{ First, Title string }

// Tables writes a Markdown table for each group, with a line for each flag.
func Tables(b *strings.Builder, f *pflag.FlagSet, groups []Group) {
	f.VisitAll(func(flag *pflag.Flag) {
		if len(groups) > 0 && groups[0].First == flag.Name {
			b.WriteString(
				"\n## " + groups[0].Title + "\n\n| flag | variable | default | meaning | allowed |\n|---|---|---|---|---|\n",
			)
			groups = groups[1:]
		}
		value, usage := pflag.UnquoteUsage(flag)
		name := "--" + flag.Name
		if value != "" {
			name += "=" + value
		}
		def := flag.DefValue
		if def = strings.Trim(def, "[]"); def != "" {
			def = "`" + def + "`"
		}
		fmt.Fprintf(
			b,
			"| `%s` | `%s` | %s | %s | %s |\n",
			name,
			Variable(flag.Name),
			def,
			strings.ReplaceAll(usage, "|", `\|`),
			Allowed(flag),
		)
	})
}
