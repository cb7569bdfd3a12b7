for (const place of document.querySelectorAll("[data-home]")) place.textContent = home;
