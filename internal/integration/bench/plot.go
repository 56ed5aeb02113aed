package main

import (
	"bytes"
	"fmt"
	"image/color"
	"math"
	"os"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

const (
	plotWidth  = 18 * vg.Centimeter
	plotHeight = 11 * vg.Centimeter
)

// palette has colours that you can tell apart with any colour vision (Okabe and Ito).
var palette = []color.Color{
	color.RGBA{R: 0x00, G: 0x72, B: 0xB2, A: 0xFF}, // blue
	color.RGBA{R: 0x00, G: 0x00, B: 0x00, A: 0xFF}, // black
	color.RGBA{R: 0xE6, G: 0x9F, B: 0x00, A: 0xFF}, // orange
	color.RGBA{R: 0x00, G: 0x9E, B: 0x73, A: 0xFF}, // green
	color.RGBA{R: 0x56, G: 0xB4, B: 0xE9, A: 0xFF}, // sky blue
	color.RGBA{R: 0xCC, G: 0x79, B: 0xA7, A: 0xFF}, // purple
}

var glyphs = []draw.GlyphDrawer{
	draw.CircleGlyph{}, draw.SquareGlyph{}, draw.TriangleGlyph{}, draw.PyramidGlyph{}, draw.BoxGlyph{}, draw.RingGlyph{},
}

func newPlot(title string) *plot.Plot {
	plot.DefaultFont = font.Font{Typeface: "Liberation", Variant: "Sans"}
	p := plot.New()
	p.Title.Text = title
	p.Title.TextStyle.Font.Size = vg.Points(14)
	p.Title.Padding = vg.Points(8)
	p.BackgroundColor = color.White
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Label.TextStyle.Font.Size = vg.Points(12)
		axis.Tick.Label.Font.Size = vg.Points(11)
	}
	p.Legend.TextStyle.Font.Size = vg.Points(11)
	return p
}

// plotRates shows the sets per second of each way, by the number of writers.
func plotRates(races []*race) *plot.Plot {
	p := newPlot("Durable sets per second by number of writers")
	p.X.Label.Text, p.Y.Label.Text = "concurrent writers (log scale)", "sets/s (log scale)"
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	least, greatest := math.Inf(1), 0.0
	var writers, decades []plot.Tick
	for _, r := range races {
		writers = append(writers, plot.Tick{Value: float64(r.writers), Label: fmt.Sprint(r.writers)})
	}
	p.Add(newGrid())
	p.Legend.Padding = vg.Points(3)
	for i, l := range races[0].lanes {
		var points plotter.XYs
		for _, r := range races {
			rate := median(rates(r.lanes[i].turns))
			least, greatest = min(least, rate), max(greatest, rate)
			points = append(points, plotter.XY{X: float64(r.writers), Y: rate})
		}
		addLine(p, i, strings.ReplaceAll(l.way.name, "*", ""), points)
	}
	p.Y.Min = math.Pow(10, math.Floor(math.Log10(least)))
	p.Y.Max = math.Pow(10, math.Ceil(math.Log10(greatest)))
	for v := p.Y.Min; v <= p.Y.Max; v *= 10 {
		decades = append(decades, plot.Tick{Value: v, Label: grouped(int(v))})
	}
	p.Y.Max *= 10 // room for the legend
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.ConstantTicks(writers), plot.ConstantTicks(decades)
	p.X.Min, p.X.Max = 0.85*float64(races[0].writers), 1.15*float64(races[len(races)-1].writers)
	p.Legend.Top, p.Legend.Left = true, true
	p.Legend.XOffs, p.Legend.YOffs = vg.Points(8), -vg.Points(4)
	return p
}

// plotWaits shows the waits of small clients, when it's quiet and during a flood. Each trial
// has a row.
func plotWaits(trials []waitTrial) *plot.Plot {
	p := newPlot("99th percentile of small clients' waits")
	p.X.Label.Text = "ms from a change to its delivery (log scale)"
	p.X.Scale = plot.LogScale{}
	p.Add(newGrid())
	var names []plot.Tick
	var quiet, meanwhile plotter.XYs
	greatest := 0.0
	for i, trial := range trials {
		y := float64(len(trials) - i)
		names = append(names, plot.Tick{Value: y, Label: trial.engine + ",\n" + trial.short})
		pair := plotter.XYs{{X: trial.quiet, Y: y}, {X: trial.meanwhile, Y: y}}
		greatest = max(greatest, trial.quiet, trial.meanwhile)
		quiet, meanwhile = append(quiet, pair[0]), append(meanwhile, pair[1])
		span, err := plotter.NewLine(pair)
		if err != nil {
			panic(err) // a wait isn't finite
		}
		span.Color, span.Width = color.Gray{Y: 0x99}, vg.Points(2)
		p.Add(span)
	}
	for i, side := range []struct {
		name  string
		waits plotter.XYs
	}{{"quiet", quiet}, {"meanwhile", meanwhile}} {
		marks, err := plotter.NewScatter(side.waits)
		if err != nil {
			panic(err) // a wait isn't finite
		}
		marks.GlyphStyle = draw.GlyphStyle{Color: palette[2*i], Radius: vg.Points(5), Shape: glyphs[3*i]}
		p.Add(marks)
		p.Legend.Add(side.name, marks)
	}
	var decades []plot.Tick
	for v := 1.0; v < 10*greatest; v *= 10 {
		decades = append(decades, plot.Tick{Value: v, Label: grouped(int(v))})
	}
	p.X.Min, p.X.Max = 1, decades[len(decades)-1].Value
	p.Y.Min, p.Y.Max = 0.5, float64(len(trials))+1.25 // room for the legend
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.ConstantTicks(decades), plot.ConstantTicks(names)
	p.Legend.Top, p.Legend.Left = true, true
	p.Legend.XOffs, p.Legend.YOffs = vg.Points(8), -vg.Points(4)
	return p
}

// addLine adds the i-th line, with its marks and a name in the legend.
func addLine(p *plot.Plot, i int, name string, points plotter.XYs) {
	line, marks, err := plotter.NewLinePoints(points)
	if err != nil {
		panic(err) // a value isn't finite
	}
	line.Color, line.Width = palette[i%len(palette)], vg.Points(2)
	marks.GlyphStyle = draw.GlyphStyle{Color: line.Color, Radius: vg.Points(4), Shape: glyphs[i%len(glyphs)]}
	p.Add(line, marks)
	p.Legend.Add(name, line, marks)
}

func newGrid() *plotter.Grid {
	grid := plotter.NewGrid()
	grid.Horizontal.Color = color.Gray{Y: 0xDD}
	grid.Vertical.Color = color.Gray{Y: 0xDD}
	return grid
}

// writeSVG writes a plot with a white background.
func writeSVG(path string, p *plot.Plot) error {
	canvas := vgsvg.NewWith(vgsvg.UseWH(plotWidth, plotHeight))
	p.Draw(draw.New(canvas))
	var text bytes.Buffer
	if _, err := canvas.WriteTo(&text); err != nil {
		return err
	}
	// Name fonts with the same metrics instead of embedding one, which would be larger than
	// the plot.
	fonts := strings.ReplaceAll(text.String(), "Liberation Sans", "Liberation Sans,Arial,Helvetica,sans-serif")
	return os.WriteFile(path, []byte(fonts), 0o644)
}
