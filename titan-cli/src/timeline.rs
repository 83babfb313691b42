//! The activity timeline of a run: the activity of each role, its waits, and the state of each slot.
//!
//! ```text
//! producer   ▇▇░░░░▇▇      the role, hatched where it waits
//!   copies     ▬▬▬▬▬▬      an operation in flight, from its issue to its completion
//! ring[0]    ▒▒▒▒████      a slot: being filled, ready, being read
//! ```
//!
//! The axis counts steps of the run, not cycles: it shows order, not speed. A line leads from the event that ended a wait to the end of
//! the wait. The colour is the ring time, so that a tile can be followed through the rows; colours differ in lightness too.
//!
//! Deliberately absent: the interpretation of a run. `picture.rs` makes the rows.

use std::fmt::Write as _;

/// The kind of a span in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    /// A running role.
    Busy,
    /// A role that waits.
    Waiting,
    /// An operation in flight.
    Under,
    /// A slot that is being filled.
    Filling,
    /// A slot that is filled and not yet read.
    Ready,
    /// A slot that is read.
    Read,
}

/// A span in a row.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    pub(crate) lane: usize,
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) tone: Tone,
    /// The ring time, if it belongs to a ring.
    pub(crate) time: Option<u64>,
    /// The tooltip, also written into the span where there is room.
    pub(crate) text: String,
    /// The short form.
    pub(crate) mark: String,
}

/// A line from the event that ended a wait to the end of the wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    pub(crate) from: (usize, u64),
    pub(crate) to: (usize, u64),
}

/// A row of the timeline.
#[derive(Clone, Debug)]
pub(crate) struct Lane {
    pub(crate) name: String,
    /// Whether it belongs to the one above.
    pub(crate) inner: bool,
    /// Whether a gap separates it from the one above.
    pub(crate) begins: bool,
}

/// A picture.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timeline {
    pub(crate) title: String,
    /// The error at the end of the run.
    pub(crate) found: Option<String>,
    pub(crate) steps: u64,
    pub(crate) lanes: Vec<Lane>,
    pub(crate) spans: Vec<Span>,
    pub(crate) links: Vec<Link>,
}

/// The least width for names.
const LEFT: f64 = 190.0;
/// The width of the legend.
const LEGEND: f64 = 880.0;
const TOP: f64 = 54.0;
const ROW: f64 = 26.0;
const INNER: f64 = 18.0;
const GAP: f64 = 14.0;
/// The widest and the narrowest step, and the width that is aimed at.
const STEP: (f64, f64, f64) = (3.0, 26.0, 1400.0);

const STYLE: &str = "text{font:12px ui-sans-serif,system-ui,sans-serif;fill:#1d2433}\
.t{font-size:15px;font-weight:600}.s{font-size:10px;fill:#5b6478}.l{font-weight:600}.e{fill:#b3261e}.m{font-size:10px;pointer-events:none}\
.g{stroke:#e6e9ef}.b{stroke:#1d2433;stroke-opacity:.35;stroke-width:.6}.k{stroke:#b3261e;stroke-width:1;fill:none;opacity:.55}";

/// The colours of eight consecutive ring times; neighbours differ in lightness too.
const COLOURS: [&str; 8] = ["#8ecae6", "#f6bd60", "#95d5b2", "#cdb4db", "#5fa8d3", "#f28482", "#52b788", "#b39ddb"];

impl Timeline {
    /// The picture as SVG.
    pub(crate) fn svg(&self) -> String {
        let step = (STEP.2 / steps_of(self.steps)).clamp(STEP.0, STEP.1);
        let (mut tops, mut y) = (Vec::new(), TOP);
        for (i, lane) in self.lanes.iter().enumerate() {
            y += if lane.begins && i > 0 { GAP } else { 0.0 };
            tops.push(y);
            y += height(lane);
        }
        let (left, bottom) = (self.left(), y);
        let said = letters(&self.title) * 9.5;
        let width = (left + steps_of(self.steps) * step + 24.0).max(LEGEND).max(said + 32.0);
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{:.0}\" role=\"img\"><title>{}</title>\
             <style>{STYLE}</style><defs><pattern id=\"w\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" \
             patternTransform=\"rotate(45)\"><rect width=\"6\" height=\"6\" fill=\"#fbe9e7\"/><rect width=\"2\" height=\"6\" \
             fill=\"#e8a39c\"/></pattern></defs><rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
            bottom + if self.found.is_some() { 82.0 } else { 58.0 },
            escaped(&self.title),
        );
        let _ = writeln!(out, "<text class=\"t\" x=\"16\" y=\"26\">{}</text>", escaped(&self.title));
        self.axis(&mut out, left, step, bottom);
        for (lane, top) in self.lanes.iter().zip(&tops) {
            let (x, class) = if lane.inner { (30, "s") } else { (16, "l") };
            let base = top + height(lane) / 2.0 + 4.0;
            let _ = writeln!(out, "<text class=\"{class}\" x=\"{x}\" y=\"{base:.1}\">{}</text>", escaped(&lane.name));
        }
        for span in &self.spans {
            if let (Some(top), Some(lane)) = (tops.get(span.lane), self.lanes.get(span.lane)) {
                draw(&mut out, span, (left, step), *top, height(lane));
            }
        }
        for link in &self.links {
            let end = |(lane, at): (usize, u64)| {
                let lane_height = self.lanes.get(lane).map_or(ROW, height);
                tops.get(lane).map(|top| (left + steps_of(at) * step, top + lane_height / 2.0))
            };
            if let (Some((x1, y1)), Some((x2, y2))) = (end(link.from), end(link.to)) {
                let bend = (x1 + x2) / 2.0 + 6.0;
                let _ = writeln!(
                    out,
                    "<path class=\"k\" d=\"M{x1:.1} {y1:.1}C{bend:.1} {y1:.1} {bend:.1} {y2:.1} {x2:.1} {y2:.1}\"/>"
                );
            }
        }
        legend(&mut out, bottom + 40.0);
        if let Some(found) = &self.found {
            let most = (0u32..).take_while(|n| f64::from(*n) * 6.8 + 40.0 < width).count();
            let short: String = found.chars().take(most).collect();
            let dots = if short.len() < found.len() { "…" } else { "" };
            let _ =
                writeln!(out, "<text class=\"e\" x=\"16\" y=\"{:.1}\">{}{dots}</text>", bottom + 66.0, escaped(&short));
        }
        out + "</svg>\n"
    }

    /// The position where the steps begin, to the right of the names.
    fn left(&self) -> f64 {
        self.lanes.iter().map(|lane| letters(&lane.name) * 7.5 + 40.0).fold(LEFT, f64::max)
    }

    /// The axis, with lines at distances at which labels do not overlap.
    fn axis(&self, out: &mut String, left: f64, step: f64, bottom: f64) {
        let every = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000];
        let every = every.into_iter().find(|n| steps_of(*n) * step >= 44.0).unwrap_or(10_000);
        for at in (0..=self.steps).step_by(usize::try_from(every).unwrap_or(1)) {
            let x = left + steps_of(at) * step;
            let y = TOP - 6.0;
            let _ = writeln!(out, "<line class=\"g\" x1=\"{x:.1}\" y1=\"{y:.1}\" x2=\"{x:.1}\" y2=\"{bottom:.1}\"/>");
            let _ = writeln!(
                out,
                "<text class=\"s\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{at}</text>",
                TOP - 10.0
            );
        }
    }
}

/// Pictures of more steps than a float counts exactly are not drawn.
fn steps_of(steps: u64) -> f64 {
    f64::from(u32::try_from(steps).unwrap_or(u32::MAX))
}

fn letters(text: &str) -> f64 {
    f64::from(u32::try_from(text.chars().count()).unwrap_or(u32::MAX))
}

const fn height(lane: &Lane) -> f64 {
    if lane.inner { INNER } else { ROW }
}

fn draw(out: &mut String, span: &Span, (left, step): (f64, f64), top: f64, height: f64) {
    let (x, w) = (left + steps_of(span.from) * step, (steps_of(span.to.saturating_sub(span.from)) * step).max(1.5));
    let colour = span.time.map_or("#c7ced9", |t| COLOURS[usize::try_from(t % 8).unwrap_or(0)]);
    let (fill, opacity) = paint(span.tone, colour);
    let margin = if span.tone == Tone::Under { height * 0.3 } else { 2.5 };
    let (y, h) = (top + margin, 2.0f64.mul_add(-margin, height));
    let _ = writeln!(
        out,
        "<rect class=\"b\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{w:.1}\" height=\"{h:.1}\" rx=\"2\" fill=\"{fill}\" \
         fill-opacity=\"{opacity}\"><title>{}</title></rect>",
        escaped(&span.text)
    );
    // A character is about six units wide.
    let room = letters(&span.mark) * 6.0 + 4.0;
    if !span.mark.is_empty() && room <= w && h >= 11.0 {
        let (cx, cy) = (x + w / 2.0, top + height / 2.0 + 3.5);
        let _ = writeln!(
            out,
            "<text class=\"m\" x=\"{cx:.1}\" y=\"{cy:.1}\" text-anchor=\"middle\">{}</text>",
            escaped(&span.mark)
        );
    }
}

/// The fill colour and opacity of a tone.
const fn paint(tone: Tone, colour: &str) -> (&str, f64) {
    match tone {
        Tone::Waiting => ("url(#w)", 1.0),
        Tone::Busy | Tone::Read => (colour, 1.0),
        Tone::Under | Tone::Ready => (colour, 0.6),
        Tone::Filling => (colour, 0.28),
    }
}

/// The legend of the tones.
fn legend(out: &mut String, y: f64) {
    let tones = [
        (Tone::Busy, "running"),
        (Tone::Waiting, "waits"),
        (Tone::Under, "in flight"),
        (Tone::Filling, "slot being filled"),
        (Tone::Ready, "ready"),
        (Tone::Read, "being read"),
    ];
    let mut x = 16.0;
    for (tone, says) in tones {
        let (fill, opacity) = paint(tone, COLOURS[0]);
        let (ry, rh) = if tone == Tone::Under { (y - 7.0, 5.0) } else { (y - 10.0, 12.0) };
        let _ = writeln!(
            out,
            "<rect class=\"b\" x=\"{x:.0}\" y=\"{ry:.0}\" width=\"18\" height=\"{rh:.0}\" rx=\"2\" fill=\"{fill}\" \
             fill-opacity=\"{opacity}\"/><text class=\"s\" x=\"{:.0}\" y=\"{y:.0}\">{says}</text>",
            x + 24.0
        );
        x += 44.0 + letters(says) * 5.2;
    }
    let _ = writeln!(
        out,
        "<text class=\"s\" x=\"{:.0}\" y=\"{y:.0}\">colour: ring time · line: the event that ended a wait</text>",
        x + 6.0
    );
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture() -> Timeline {
        let lane = |name: &str, inner| Lane { name: name.to_owned(), inner, begins: !inner };
        let span = |lane, from, to, tone, time| Span {
            lane,
            from,
            to,
            tone,
            time,
            text: "a < b".to_owned(),
            mark: "t 1".to_owned(),
        };
        Timeline {
            title: "ring & \"co\"".to_owned(),
            found: None,
            steps: 40,
            lanes: vec![lane("producer", false), lane("copies", true), lane("consumer", false), lane("ring[0]", false)],
            spans: vec![
                span(0, 0, 2, Tone::Busy, Some(1)),
                span(1, 2, 9, Tone::Under, Some(1)),
                span(2, 0, 9, Tone::Waiting, None),
                span(2, 9, 12, Tone::Busy, Some(1)),
                span(3, 2, 9, Tone::Filling, Some(1)),
                span(3, 9, 12, Tone::Read, Some(1)),
            ],
            links: vec![Link { from: (1, 9), to: (2, 9) }],
        }
    }

    #[test]
    fn a_picture_is_well_formed_and_has_everything() {
        let svg = picture().svg();
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
        assert_eq!(svg.matches("<title>a &lt; b</title>").count(), 6, "{svg}");
        assert!(svg.contains("ring &amp; &quot;co&quot;") && svg.contains("ring[0]"));
        assert_eq!(svg.matches("class=\"k\"").count(), 1);
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
    }

    #[test]
    fn what_lies_outside_is_left_out() {
        let mut odd = picture();
        odd.spans.push(Span { lane: 99, ..odd.spans[0].clone() });
        odd.links.push(Link { from: (99, 1), to: (0, 1) });
        odd.spans.push(Span { from: 9, to: 3, ..odd.spans[0].clone() });
        assert_eq!(odd.svg().matches("<title>a &lt; b</title>").count(), 7);
        assert!(Timeline::default().svg().contains("</svg>"));
    }
}
