package dagsteps

import (
	"fmt"
	"path"
	"strings"

	"htc.cern.ch/htcd/internal/convert/dagfile"
)

// name is what a step is called: as its node, or what the names of its nodes begin with, or else as its submit file.
func name(nodes [][]*dagfile.Node, taken map[string]bool) string {
	first := nodes[0][0]
	common, n := first.Name, 0
	for _, sequence := range nodes {
		for _, node := range sequence {
			n++
			for !strings.HasPrefix(node.Name, common) {
				common = common[:len(common)-1]
			}
		}
	}
	if n > 1 {
		common = strings.TrimRight(common, "0123456789")
	}
	base := Word(common)
	if base == "" {
		base = Word(strings.TrimSuffix(path.Base(first.Submit), path.Ext(first.Submit)))
	}
	if base == "" {
		base = "step"
	}
	for i, free := 2, base; ; i++ {
		if !taken[free] {
			taken[free] = true
			return free
		}
		suffix := fmt.Sprintf("-%d", i)
		free = strings.TrimRight(base[:min(len(base), 63-len(suffix))], "-_") + suffix
	}
}

// Word makes of a text a name that a step may have; "" if nothing is left.
func Word(text string) string {
	word := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_' {
			return r
		}
		return '-'
	}, strings.ToLower(text))
	word = strings.Trim(word, "-_")
	return strings.TrimRight(word[:min(len(word), 63)], "-_")
}
