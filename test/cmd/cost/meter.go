package main

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// spent is what has been used up to a moment.
type spent struct {
	// cpu is in hundredths of a second, the kernel's unit in both of its accounts.
	cpu int64
	// started counts the processes that have ended, by their program.
	started map[string]int
}

// meter reads the accounts of ended processes, and the times of living ones.
type meter struct {
	file  io.Reader
	ended spent
}

// The kernel's struct acct_v3.
const (
	recordSize = 64
	userTime   = 32
	systemTime = 34
	program    = 48
)

// read returns what has been used until now.
func (m *meter) read() (spent, error) {
	record := make([]byte, recordSize)
	for {
		if _, err := io.ReadFull(m.file, record); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return spent{}, err
		}
		if m.ended.started == nil {
			m.ended.started = map[string]int{}
		}
		m.ended.cpu += ticks(record[userTime:]) + ticks(record[systemTime:])
		name, _, _ := strings.Cut(string(record[program:]), "\x00")
		m.ended.started[name]++
	}
	now := spent{cpu: m.ended.cpu, started: map[string]int{}}
	for name, n := range m.ended.started {
		now.started[name] = n
	}
	processes, err := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range processes {
		now.cpu += living(file)
	}
	return now, err
}

// ticks converts the kernel's comp_t: 13 bits, shifted by thrice the other 3.
func ticks(b []byte) int64 {
	n := binary.NativeEndian.Uint16(b)
	return int64(n&0x1fff) << (3 * (n >> 13))
}

// living returns the time that a process has used itself; one that has just ended is in the accounts.
func living(stat string) int64 {
	text, err := os.ReadFile(stat)
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	const user, system = 11, 12
	if len(fields) <= system {
		return 0
	}
	u, _ := strconv.ParseInt(fields[user], 10, 64)
	s, _ := strconv.ParseInt(fields[system], 10, 64)
	return u + s
}
