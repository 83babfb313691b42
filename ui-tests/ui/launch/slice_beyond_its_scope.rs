//! What borrows a slice of the host's stays in the scope that waits for its launches.

fn main() -> titan::Result<()> {
    let x = vec![1.0f32; 4];
    let mut kept = None;
    titan::cpu::scope(|host| {
        kept = Some(host.borrow(&x, [4])?);
        Ok::<_, titan::Error>(())
    })?;
    println!("{kept:?}");
    Ok(())
}
