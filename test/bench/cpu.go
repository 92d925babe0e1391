package main

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// usage is the CPU time of all processes of the lab, which has its own /proc, by program name. The time of a program's
// ended children is under its name plus " children".
type usage map[string]time.Duration

func cpuUsage() (usage, error) {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	u := usage{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := strings.Cut(string(text), "(")
		end := strings.LastIndexByte(rest, ')')
		program, rest := rest[:end], rest[end+1:]
		fields := strings.Fields(rest)
		for i, name := range map[int]string{11: program, 12: program, 13: program + " children", 14: program + " children"} {
			ticks, err := strconv.Atoi(fields[i])
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			u[name] += time.Duration(ticks) * 10 * time.Millisecond
		}
	}
	return u, nil
}

// since returns what was used from before to u.
func (u usage) since(before usage) usage {
	used := usage{}
	for name, is := range u {
		used[name] = is - before[name]
	}
	return used
}

func (u usage) add(more usage) {
	for name, used := range more {
		u[name] += used
	}
}

// perItem prints, for each program, the milliseconds per item of n in the two halves of a row.
func perItem(row string, ours, floor usage, n int) string {
	names := slices.SortedFunc(
		maps.Keys(ours),
		func(a, b string) int { return cmp.Compare(ours[b]+floor[b], ours[a]+floor[a]) },
	)
	lines := []string{fmt.Sprintf("\n| CPU of %s | ours [ms] | floor [ms] |", row), "|---|---|---|"}
	total := [2]time.Duration{}
	ms := func(d time.Duration) string {
		return fmt.Sprintf("%.1f", float64(d)/float64(time.Millisecond)/float64(n))
	}
	for _, name := range names {
		total[0], total[1] = total[0]+ours[name], total[1]+floor[name]
		if most := max(ours[name], floor[name]); most >= time.Duration(n)*100*time.Microsecond {
			lines = append(lines, fmt.Sprintf("| %s | %s | %s |", name, ms(ours[name]), ms(floor[name])))
		}
	}
	return strings.Join(append(lines, fmt.Sprintf("| all | %s | %s |", ms(total[0]), ms(total[1]))), "\n")
}
