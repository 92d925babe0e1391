package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"
)

// Callbacks says what receiver-net does to callbacks: each field is the probability, 0 to 1, for each callback. The
// zero value forwards every callback unchanged.
type Callbacks struct {
	// Drop loses the callback, or only the answer to it, so that the job sends it again.
	Drop float64 `json:"drop,omitempty"`
	// Delay holds the callback back for up to CallbackDelay.
	Delay float64 `json:"delay,omitempty"`
	// Double sends the callback a second time, up to CallbackDelay later.
	Double float64 `json:"double,omitempty"`
}

// CallbackDelay is the maximum delay of a callback by receiver-net.
const CallbackDelay = 5 * time.Second

// DisturbCallbacks sets what happens to callbacks that arrive from now on.
func (l *Lab) DisturbCallbacks(c Callbacks) error {
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	tmp := l.CallbacksFile() + ".new"
	if err := os.WriteFile(tmp, text, 0o644); err != nil {
		return err
	}
	return os.Rename(tmp, l.CallbacksFile())
}

// CallbacksFile is the file that receiver-net reads for every callback.
func (l *Lab) CallbacksFile() string { return l.Path("run", "callbacks.json") }

// ReadCallbacks returns what DisturbCallbacks wrote last; the zero value if it never did.
func ReadCallbacks(file string) (Callbacks, error) {
	var c Callbacks
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return c, err
	}
	if err := json.Unmarshal(text, &c); err != nil {
		return c, fmt.Errorf("%s: %w", file, err)
	}
	return c, nil
}
