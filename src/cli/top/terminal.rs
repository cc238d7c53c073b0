//! The terminal of `lockward top`: taken at the start, given back whatever ends the program, a panic and a signal
//! included. Writes lines and reads keys; knows nothing of what they mean.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, poll, read};
use crossterm::style::{Attribute, Color, Print, SetAttribute, SetForegroundColor};
use crossterm::terminal::{
    BeginSynchronizedUpdate, Clear, ClearType, DisableLineWrap, EnableLineWrap, EndSynchronizedUpdate,
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode, size,
};
use crossterm::{cursor, execute, queue};
use tokio::sync::mpsc;

use super::screen::{Line, Style};
use super::state::Key;

/// How often the reading of keys looks whether anybody still wants them.
const LOOK_AGAIN: Duration = Duration::from_millis(200);
/// Keys that are held for the program; of more, the later ones are lost.
const KEYS_HELD: usize = 64;

/// The terminal is ours, and has to be given back.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// What comes from the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Input {
    Pressed(Key),
    Resized,
}

/// The terminal, while it is ours.
pub(super) struct Terminal {
    colours: bool,
}

impl Terminal {
    /// Takes the terminal.
    pub(super) fn take() -> io::Result<Terminal> {
        enable_raw_mode()?;
        TAKEN.store(true, Ordering::SeqCst);
        let shown = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            // Before the text of the panic is written, or it would go with the other screen.
            give_back();
            shown(info);
        }));
        let terminal = Terminal {
            colours: std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
        };
        execute!(io::stdout(), EnterAlternateScreen, DisableLineWrap, cursor::Hide)?;
        Ok(terminal)
    }

    /// Columns and rows.
    pub(super) fn size() -> (usize, usize) {
        size().map_or((80, 24), |(columns, rows)| (columns.into(), rows.into()))
    }

    /// Writes the whole window in one go. After a panic, of whichever thread, the terminal is ours no longer: that is an
    /// error, or what the panic said would be drawn over.
    pub(super) fn show(&self, lines: &[Line]) -> io::Result<()> {
        if !TAKEN.load(Ordering::SeqCst) {
            return Err(io::Error::other(
                "it was given back, because a part of lockward has failed",
            ));
        }
        let mut frame = Vec::new();
        queue!(frame, BeginSynchronizedUpdate)?;
        for (row, line) in (0..=u16::MAX).zip(lines) {
            queue!(frame, cursor::MoveTo(0, row))?;
            self.begin(line.style, &mut frame)?;
            queue!(
                frame,
                Print(&line.text),
                SetAttribute(Attribute::Reset),
                Clear(ClearType::UntilNewLine)
            )?;
        }
        queue!(frame, EndSynchronizedUpdate)?;
        let mut out = io::stdout().lock();
        out.write_all(&frame)?;
        out.flush()
    }

    fn begin(&self, style: Style, frame: &mut Vec<u8>) -> io::Result<()> {
        let attribute = match style {
            Style::Plain => return Ok(()),
            Style::Bold => Attribute::Bold,
            Style::Dim => Attribute::Dim,
            Style::Inverse => Attribute::Reverse,
            Style::Warning if self.colours => return queue!(frame, SetForegroundColor(Color::DarkYellow)),
            Style::Bad if self.colours => {
                return queue!(frame, SetForegroundColor(Color::DarkRed), SetAttribute(Attribute::Bold));
            }
            Style::Warning | Style::Bad => Attribute::Bold,
        };
        queue!(frame, SetAttribute(attribute))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        give_back();
    }
}

/// Gives the terminal back, once.
pub(super) fn give_back() {
    if TAKEN.swap(false, Ordering::SeqCst) {
        let _ = execute!(
            io::stdout(),
            SetAttribute(Attribute::Reset),
            EnableLineWrap,
            cursor::Show,
            LeaveAlternateScreen
        );
        let _ = disable_raw_mode();
    }
}

/// What comes from the terminal from now on, read by a thread of its own, since reading blocks. It ends soon after
/// nobody wants to hear it any more.
pub(super) fn inputs() -> mpsc::Receiver<Input> {
    let (tell, told) = mpsc::channel(KEYS_HELD);
    std::thread::spawn(move || {
        while !tell.is_closed() {
            let input = match poll(LOOK_AGAIN) {
                Ok(false) => continue,
                Ok(true) => read(),
                Err(error) => Err(error),
            };
            let input = match input {
                Ok(Event::Resize(..)) => Some(Input::Resized),
                Ok(Event::Key(event)) => key(event).map(Input::Pressed),
                Ok(_) => None,
                Err(_) => Some(Input::Pressed(Key::Quit)),
            };
            if let Some(input) = input {
                // Whoever presses faster than we draw does not want each one.
                let _ = tell.try_send(input);
            }
        }
    });
    told
}

fn key(event: KeyEvent) -> Option<Key> {
    if event.kind == KeyEventKind::Release {
        return None;
    }
    let control = event.modifiers.contains(KeyModifiers::CONTROL);
    Some(match event.code {
        KeyCode::Char('c' | 'd') if control => Key::Quit,
        KeyCode::Char(_) if control => return None,
        KeyCode::Char(letter) => Key::Letter(letter),
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Escape,
        KeyCode::Backspace => Key::Backspace,
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::Left => Key::Left,
        KeyCode::Right => Key::Right,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_as_they_are_pressed() {
        let press = |code, modifiers| key(KeyEvent::new(code, modifiers));
        assert_eq!(press(KeyCode::Char('c'), KeyModifiers::CONTROL), Some(Key::Quit));
        assert_eq!(press(KeyCode::Char('z'), KeyModifiers::CONTROL), None);
        assert_eq!(press(KeyCode::Char('S'), KeyModifiers::SHIFT), Some(Key::Letter('S')));
        assert_eq!(press(KeyCode::F(1), KeyModifiers::NONE), None);
    }

    #[test]
    fn nothing_is_given_back_that_was_not_taken() {
        give_back();
        assert!(!TAKEN.load(Ordering::SeqCst));
    }

    #[test]
    fn nothing_is_drawn_on_a_terminal_that_was_given_back() {
        let given_back = Terminal { colours: false };
        assert!(given_back.show(&[]).is_err());
    }
}
