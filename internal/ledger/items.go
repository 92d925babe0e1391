package ledger

import (
	"bytes"
	"compress/flate"
	"errors"
	"fmt"
	"io"
	"strings"
)

// perBlock is how many texts are compressed together: one is found by reading a few KB.
const perBlock = 128

// Items are texts, one for each proc of a run, as they are stored.
type Items struct {
	blocks [][]byte
	n      int
}

// PackItems compresses texts without NUL. It is for use outside of a Write, since it may take a while: 0.1 s for
// 100,000.
func PackItems(texts []string) Items {
	packed := Items{n: len(texts)}
	var compressed bytes.Buffer
	w, err := flate.NewWriter(&compressed, flate.BestSpeed)
	if err != nil {
		panic(err) // only for an unknown level
	}
	for first := 0; first < len(texts); first += perBlock {
		compressed.Reset()
		w.Reset(&compressed)
		_, err := io.WriteString(w, strings.Join(texts[first:min(first+perBlock, len(texts))], "\x00"))
		if err := errors.Join(err, w.Close()); err != nil {
			panic(err) // a buffer takes everything
		}
		packed.blocks = append(packed.blocks, bytes.Clone(compressed.Bytes()))
	}
	return packed
}

// SetItems replaces the items of a run, which must be in the ledger (ErrNotFound).
func (tx *Tx) SetItems(uid string, attempt int, items Items) (err error) {
	defer wrap(&err, "items of run %s attempt %d", uid, attempt)
	if _, err := tx.exec(`DELETE FROM items WHERE run = `+runID, uid, attempt); err != nil {
		return err
	}
	for i, block := range items.blocks {
		err := tx.change(
			`INSERT INTO items (run, first, texts) SELECT id, ?, ? FROM runs WHERE uid = ? AND attempt = ?`,
			i*perBlock,
			block,
			uid,
			attempt,
		)
		if err != nil {
			return err
		}
	}
	return nil
}

// Item returns that of one proc; empty if the run has none.
func (tx *Tx) Item(uid string, attempt, proc int) (string, error) {
	var first int
	var block []byte
	err := tx.queryRow(
		`SELECT first, texts FROM items WHERE run = `+runID+` AND first <= ? ORDER BY first DESC LIMIT 1`,
		uid,
		attempt,
		proc,
	).Scan(
		&first,
		&block,
	)
	if errors.Is(err, ErrNotFound) {
		return "", nil
	}
	if err == nil {
		var texts []string
		if texts, err = unpack(block); err == nil && proc-first < len(texts) {
			return texts[proc-first], nil
		}
	}
	if err != nil {
		return "", fmt.Errorf("item of proc %d of run %s attempt %d: %w", proc, uid, attempt, err)
	}
	return "", nil
}

// Items returns those of all procs; none if the run has none.
func (tx *Tx) Items(uid string, attempt int) ([]string, error) {
	all, err := tx.texts(`SELECT '', texts FROM items WHERE run = `+runID+` ORDER BY first`, uid, attempt)
	if err != nil {
		return nil, fmt.Errorf("items of run %s attempt %d: %w", uid, attempt, err)
	}
	return all[""], nil
}

// texts reads blocks of texts of a run, each with the name of the list that it belongs to.
func (tx *Tx) texts(query, uid string, attempt int) (map[string][]string, error) {
	all := map[string][]string{}
	err := tx.query(func(row scanner) error {
		var name string
		var block []byte
		if err := row.Scan(&name, &block); err != nil {
			return err
		}
		texts, err := unpack(block)
		all[name] = append(all[name], texts...)
		return err
	}, query, uid, attempt)
	return all, err
}

func unpack(block []byte) ([]string, error) {
	text, err := io.ReadAll(flate.NewReader(bytes.NewReader(block))) // #nosec G110 -- written by PackItems
	if err != nil {
		return nil, err
	}
	return strings.Split(string(text), "\x00"), nil
}
