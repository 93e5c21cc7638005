package bolt

import "time"

// The structures of Bolt 5, with the UTC forms of date and time.
//
// Source: Bolt structure semantics, https://neo4j.com/docs/bolt/current/bolt/structure-semantics/.

// Node is a node with an elementId.
func Node(elementID string, labels []string, properties map[string]any) Struct {
	return Struct{'N', []any{int64(0), labels, properties, elementID}}
}

// Relationship is a relationship between two nodes, given by their elementIds.
func Relationship(elementID, kind, start, end string, properties map[string]any) Struct {
	return Struct{'R', []any{int64(0), int64(0), int64(0), kind, properties, elementID, start, end}}
}

// Path is one step from a node over a relationship to another, in the relationship's direction.
func Path(from Struct, elementID, kind string, properties map[string]any, to Struct) Struct {
	step := Struct{'r', []any{int64(0), kind, properties, elementID}}
	return Struct{'P', []any{[]any{from, to}, []any{step}, []any{int64(1), int64(1)}}}
}

// DateTime is a ZONED DATETIME with an offset; DateTimeZone one with a named zone.
func DateTime(t time.Time) Struct {
	_, offset := t.Zone()
	return Struct{'I', []any{t.Unix(), int64(t.Nanosecond()), int64(offset)}}
}

// DateTimeZone is a ZONED DATETIME in a named zone.
func DateTimeZone(t time.Time, zone string) Struct {
	return Struct{'i', []any{t.Unix(), int64(t.Nanosecond()), zone}}
}

// LocalDateTime is the time that a clock in UTC shows at t, without zone.
func LocalDateTime(t time.Time) Struct {
	return Struct{'d', []any{t.Unix(), int64(t.Nanosecond())}}
}

// Date is a day, counted from 1970-01-01.
func Date(days int64) Struct { return Struct{'D', []any{days}} }

// Time is a ZONED TIME: since midnight, with its offset in seconds.
func Time(since time.Duration, offset int64) Struct {
	return Struct{'T', []any{int64(since), offset}}
}

// LocalTime is a time since midnight, without zone.
func LocalTime(since time.Duration) Struct { return Struct{'t', []any{int64(since)}} }

// Duration is a DURATION. Nanos counts upwards from seconds, and is never negative.
func Duration(months, days, seconds, nanos int64) Struct {
	return Struct{'E', []any{months, days, seconds, nanos}}
}

// Point has two coordinates or three.
func Point(srid int64, at ...float64) Struct {
	fields := []any{srid}
	for _, x := range at {
		fields = append(fields, x)
	}
	return Struct{"XY"[len(at)-2], fields}
}
