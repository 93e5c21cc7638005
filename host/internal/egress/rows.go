package egress

import (
	"encoding/base64"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/neo4j/neo4j-go-driver/v5/neo4j/dbtype"
)

// rowError is the error for a value that JSON cannot represent.
type rowError struct{ what string }

func (e *rowError) Error() string { return e.what }

// appendRow writes a row as a JSON array and a newline. ABI.md lists how each Cypher type is represented.
func appendRow(dst []byte, values []any) ([]byte, error) {
	var e wirejson.Encoder
	e.SetBytes(dst)
	w := boltWriter{e: &e}
	w.list(values)
	return append(e.Bytes(), '\n'), w.err
}

// boltWriter writes values of the driver. Err is the error of the first that could not be written.
type boltWriter struct {
	e   *wirejson.Encoder
	err error
}

func (w *boltWriter) list(values []any) {
	w.e.ArrStart()
	for _, v := range values {
		w.value(v)
	}
	w.e.ArrEnd()
}

func (w *boltWriter) value(value any) {
	switch v := value.(type) {
	case nil:
		w.e.Null()
	case bool:
		w.e.Bool(v)
	case int64:
		w.e.Int64(v)
	case float64:
		w.float(v)
	case string:
		w.e.Str(v)
	case []byte:
		w.e.Str(base64.StdEncoding.EncodeToString(v))
	case []any:
		w.list(v)
	case map[string]any:
		w.object(v)
	case time.Time:
		w.e.Str(isoDate(v) + v.Format("T15:04:05.999999999Z07:00"))
	case dbtype.LocalDateTime:
		w.e.Str(isoDate(v.Time()) + v.Time().Format("T15:04:05.999999999"))
	case dbtype.Date:
		w.e.Str(isoDate(v.Time()))
	case dbtype.Time:
		w.e.Str(v.Time().Format("15:04:05.999999999Z07:00"))
	case dbtype.LocalTime:
		w.e.Str(v.Time().Format("15:04:05.999999999"))
	case dbtype.Duration:
		w.e.Str(isoDuration(v))
	default:
		w.graph(value)
	}
}

// graph writes nodes, relationships and other composite values.
func (w *boltWriter) graph(value any) {
	switch v := value.(type) {
	case dbtype.Node:
		w.node(v)
	case dbtype.Relationship:
		w.relationship(v)
	case dbtype.Path:
		w.e.ObjStart()
		w.e.FieldStart("nodes")
		w.e.ArrStart()
		for _, n := range v.Nodes {
			w.node(n)
		}
		w.e.ArrEnd()
		w.e.FieldStart("relationships")
		w.e.ArrStart()
		for _, r := range v.Relationships {
			w.relationship(r)
		}
		w.e.ArrEnd()
		w.e.ObjEnd()
	case dbtype.Point2D:
		w.point(v.SpatialRefId, v.X, v.Y)
	case dbtype.Point3D:
		w.point(v.SpatialRefId, v.X, v.Y, v.Z)
	case *dbtype.InvalidValue:
		w.fail(fmt.Sprintf("%s: %v", v.Message, v.Err))
	default:
		w.fail(fmt.Sprintf("type %T is not known", value))
	}
}

func (w *boltWriter) fail(what string) {
	w.e.Null()
	if w.err == nil {
		w.err = &rowError{what}
	}
}

// float writes a FLOAT such that it differs from an INTEGER of the same value.
func (w *boltWriter) float(f float64) {
	switch {
	case math.IsNaN(f):
		w.e.Str("NaN")
	case math.IsInf(f, 1):
		w.e.Str("Infinity")
	case math.IsInf(f, -1):
		w.e.Str("-Infinity")
	default:
		text := strconv.FormatFloat(f, 'g', -1, 64)
		if !strings.ContainsAny(text, ".e") {
			text += ".0"
		}
		w.e.Raw([]byte(text))
	}
}

func (w *boltWriter) object(m map[string]any) {
	w.e.ObjStart()
	for _, k := range abi.SortedKeys(m) {
		w.e.FieldStart(k)
		w.value(m[k])
	}
	w.e.ObjEnd()
}

func (w *boltWriter) node(n dbtype.Node) {
	w.e.ObjStart()
	w.text("id", n.ElementId)
	w.e.FieldStart("labels")
	w.e.ArrStart()
	for _, l := range n.Labels {
		w.e.Str(l)
	}
	w.e.ArrEnd()
	w.e.FieldStart("properties")
	w.object(n.Props)
	w.e.ObjEnd()
}

func (w *boltWriter) relationship(r dbtype.Relationship) {
	w.e.ObjStart()
	w.text("id", r.ElementId)
	w.text("type", r.Type)
	w.text("start", r.StartElementId)
	w.text("end", r.EndElementId)
	w.e.FieldStart("properties")
	w.object(r.Props)
	w.e.ObjEnd()
}

func (w *boltWriter) text(key, value string) {
	w.e.FieldStart(key)
	w.e.Str(value)
}

func (w *boltWriter) point(srid uint32, at ...float64) {
	w.e.ObjStart()
	w.e.FieldStart("srid")
	w.e.Int64(int64(srid))
	for i, axis := range []string{"x", "y", "z"}[:len(at)] {
		w.e.FieldStart(axis)
		w.float(at[i])
	}
	w.e.ObjEnd()
}

// isoDate writes a date; a year that does not fit four digits gets a sign and at least six digits (ISO 8601, expanded).
func isoDate(t time.Time) string {
	if year := t.Year(); year < 0 || year > 9999 {
		return fmt.Sprintf("%+07d", year) + t.Format("-01-02")
	}
	return t.Format(time.DateOnly)
}

// isoDuration writes months, days and seconds separately, because they cannot be converted into each other.
func isoDuration(d dbtype.Duration) string {
	text := []byte{'P'}
	if d.Months != 0 {
		text = append(strconv.AppendInt(text, d.Months, 10), 'M')
	}
	if d.Days != 0 {
		text = append(strconv.AppendInt(text, d.Days, 10), 'D')
	}
	if d.Seconds == 0 && d.Nanos == 0 && len(text) > 1 {
		return string(text)
	}
	// The nanoseconds are added to the seconds, even if these are negative: -2 s and 500,000,000 ns are -1.5 s.
	seconds, nanos := d.Seconds, int64(d.Nanos)
	text = append(text, 'T')
	if seconds < 0 && nanos > 0 {
		seconds, nanos = seconds+1, 1_000_000_000-nanos
		if seconds == 0 {
			text = append(text, '-')
		}
	}
	text = strconv.AppendInt(text, seconds, 10)
	if nanos != 0 {
		fraction := fmt.Appendf(nil, ".%09d", nanos)
		for fraction[len(fraction)-1] == '0' {
			fraction = fraction[:len(fraction)-1]
		}
		text = append(text, fraction...)
	}
	return string(append(text, 'S'))
}
